"""Built terms at the nodes of integrals."""

import numpy as np

import unnorm as un
from unnorm.errors import overhear
from unnorm.solvers.penalised import built_additive


def test_nodes_far_from_the_data_are_no_rows_of_the_users():
    rng = np.random.default_rng(1)
    walk = 50 + rng.normal(size=(40, 2))
    obs = un.transitions({"x": walk[:, 0], "y": walk[:, 1], "fix": np.arange(40)}, y=("x", "y"), order="fix")
    model, _ = built_additive(un.Additive("s(step, k=5)", un.Box((0, 100), (0, 100))), obs)
    beyond = np.array([[-300.0, 50.0], [400.0, 50.0]])  # as the corners of a finer rule, from the farthest context
    context = model.contexts(obs)
    with overhear() as said:
        model.log_z(model.start, beyond, np.zeros(2), context)
    assert said == []
    with overhear() as said:
        model.jacobian(model.start, beyond, (np.array([0, 1]),))
    assert "rows lie far outside the data" in said[0]
