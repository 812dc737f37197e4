"""What an open node takes in memory: as objects, and packed as it waits in the frontier."""

from __future__ import annotations

import tracemalloc

from benchmarks.reliability.open_search import searched_until
from exactsel.nodes.sizes import node_bytes
from exactsel.nodes.table import NodeTable
from exactsel.search.frontier import MOST_OBJECTS


def run(count: int, columns: int, loss: str, subtrees: bool, seed: int) -> None:
    """Search until so many nodes are open, make all of them as objects, pack them, and say what was allocated."""
    search = searched_until(count, columns, loss, seed, subtrees=subtrees)
    all_packed = NodeTable.of(list(search.state.open_nodes()), columns)
    tracemalloc.start()
    nodes = list(all_packed)
    objects = tracemalloc.get_traced_memory()[0]
    # In the order in which a search packs them: those that were opened together are packed together.
    nodes.sort(key=lambda node: node.id)
    size = MOST_OBJECTS // 2
    parts = [nodes[first : first + size] for first in range(0, len(nodes), size)]
    before = tracemalloc.get_traced_memory()[0]
    blocks = [NodeTable.of(sorted(part, key=lambda node: (node.bound, node.id)), columns) for part in parts]
    packed = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    opened = len(nodes)
    points, entries = (
        sum(len(block.objects.points) for block in blocks),
        sum(block.objects.points.values.size for block in blocks),
    )
    print(f"{loss}, {columns} columns, subtrees {'searched' if subtrees else 'not searched'}: {opened} open nodes")
    print(f"as objects {objects / opened:.0f} bytes each, {sum(map(node_bytes, nodes)) / opened:.0f} estimated")
    print(f"packed {packed / opened:.0f} bytes each, {sum(block.nbytes for block in blocks) / opened:.0f} estimated:")
    print(
        f"  {sum(block.rows.nbytes for block in blocks) / opened:.0f} of its own, and a point of "
        f"{entries / max(1, points):.0f} entries for {opened / max(1, points):.2f} nodes",
        flush=True,
    )
