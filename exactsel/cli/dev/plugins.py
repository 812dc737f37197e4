"""``exactsel dev plugins``."""

from __future__ import annotations

import click

from exactsel.cli.talk import say


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(as_json: bool) -> None:
    """List losses, bounds, closers, trees, branchings, frontiers and heuristics, and the packages they come from."""
    import json

    from exactsel import registry

    plugins = {kind: registry.origins(kind) for kind in registry.KINDS}
    if as_json:
        rows = {kind: [origin._asdict() for origin in origins] for kind, origins in plugins.items()}
        say(json.dumps(rows))
        return
    width = max(len(origin.name) for origins in plugins.values() for origin in origins)
    for kind, origins in plugins.items():
        for origin in origins:
            package = f"{origin.package} {origin.version}"
            say(f"{kind:<12} {origin.name:<{width}}  {package:<20} {origin.object}")
