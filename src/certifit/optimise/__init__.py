"""Updates for `core.fixed_point`: each takes what a pass measured and says where to go next."""
