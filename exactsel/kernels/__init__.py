"""Compiled inner loops: free functions on arrays and scalars, no classes, no strings, no input or output.

Every fast kernel has a slow, obvious twin in the tests which a property test holds equal to it.

Vocabulary shared by all kernels of a node (S, C): ``columns`` lists S first and then C, ``fixed`` = |S|,
``slots`` = r = k - |S|, and vectors of one entry per listed column are called *compact*.
"""
