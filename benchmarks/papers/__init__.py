"""The tables and figures of the five papers, one command a paper.

``python -m benchmarks.papers --help``; docs/development/papers.md says what is confirmed. The experiments stand in
benchmarks.paper, poss, pposs, pocss and greedy_rls; here their rows become exhibits (exhibit.py): data, text and
picture, beside what the paper prints. One file a paper (best_first.py, poss.py, pposs.py, pocss.py, greedy_rls.py);
commands.py runs them.
"""
