"""Support vector machines with kernels: classification and regression."""
