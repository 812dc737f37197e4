"""``exactsel plugins``."""

from __future__ import annotations

import click


@click.command("plugins")
def command() -> None:
    """List losses, bounds, trees, branchings, frontiers and heuristics, built in and installed."""
    from exactsel import registry

    for kind in registry.KINDS:
        click.echo(f"{kind:<12} {', '.join(registry.names(kind))}")
