"""``exactsel dev``: commands for tests, experiments and installations of exactsel itself."""
