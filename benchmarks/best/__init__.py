"""Best models by a criterion beside the figures of BranchGLM."""
