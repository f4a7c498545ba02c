"""The tests nearest to each module that has mutants: fast files that import it, the quickest to fail first."""

NEAREST: dict[str, tuple[str, ...]] = {
    "_base/intervals.py": ("tests/inference/test_nested.py",),
    "engine/inference.py": ("tests/engine/test_gam_inference.py",),
    "groups/joint.py": ("tests/groups/test_group_scores.py",),
    "groups/population.py": ("tests/groups/test_group_scores.py",),
    "groups/scores.py": ("tests/groups/test_group_scores.py",),
    "inference/advice.py": ("tests/inference/test_advice.py::test_needed_reads_between_the_multiples",),
    "inference/evidence.py": ("tests/inference/test_evidence.py",),
    "inference/sandwich.py": ("tests/inference/test_sandwich.py",),
    "inference/tests.py": ("tests/inference/test_nested.py",),
    "objectives/additive.py": ("tests/objectives/test_exact_scores.py",),
    "objectives/base.py": ("tests/results/test_errors_shown.py",),
    "objectives/contrastive.py": ("tests/objectives/test_row_scores.py",),
    "objectives/exact.py": ("tests/objectives/test_exact_scores.py",),
    "objectives/likelihood.py": ("tests/objectives/test_scores.py", "tests/objectives/test_row_scores.py"),
    "objectives/ranking.py": ("tests/objectives/test_choice_scores.py",),
    "objectives/row_problem.py": ("tests/objectives/test_row_scores.py",),
    "objectives/rows.py": ("tests/objectives/test_row_scores.py",),
    "objectives/scores.py": ("tests/objectives/test_scores.py",),
    "results/fit.py": (
        "tests/results/test_saved_errors.py",
        "tests/results/test_errors_shown.py",
        "tests/inference/test_referee.py",
    ),
    "results/held_out.py": (
        "tests/results/test_saved_errors.py",
        "tests/results/test_errors_shown.py",
    ),
    "results/making.py": (
        "tests/results/test_saved_errors.py",
        "tests/results/test_errors_shown.py",
    ),
    "results/smooths.py": (
        "tests/results/test_saved_errors.py",
        "tests/results/test_errors_shown.py",
    ),
    "solvers/engine_rows.py": ("tests/solvers/test_engine_rows.py",),
    "solvers/penalised.py": ("tests/solvers/test_penalised_scores.py",),
    "solvers/redraw_scores.py": ("tests/solvers/test_redraw_scores.py",),
    "solvers/stochastic/ending.py": ("tests/solvers/stochastic/test_scores_of_a_run.py",),
    "solvers/stochastic/finish.py": ("tests/solvers/stochastic/test_scores_of_a_run.py",),
}
