"""The spatial part of f: the preference for places, whatever the step."""

from __future__ import annotations

import numpy as np

from ...data.placing import commonest, window_codes
from .. import figures
from ..analysis import Analysis
from ..page import Section

WIDTH = 80  # cells across the map


def section(analysis: Analysis) -> Section:
    labels = spatial_labels(analysis)
    if not labels:
        return Section(("The model has no term that depends on the place alone.",))
    part = analysis.smooths()
    region, context = commonest(analysis.model.domain, analysis.obs)
    x, y, points, inside = figures.plane(region, WIDTH)
    any_context = np.full(int(inside.sum()), context)
    covariates = analysis.model.covariates(analysis.obs)
    z = np.zeros(len(any_context))
    for label in labels:
        term = part.term(label)
        columns = covariates.values(term.covariates, analysis.obs, points[inside], any_context)
        z += term.design(columns) @ part.beta[part.slices[label]]
    peak = points[inside][int(np.argmax(z))]
    z -= np.log(np.mean(np.exp(z)))  # log density relative to a uniform choice of place
    who = "group" if analysis.fits else "fitted model"
    alt = (
        f"Map of the preference for places, {' + '.join(labels)}: highest at {peak[0]:.0f}, {peak[1]:.0f}, "
        f"{np.exp(z.max()):.2g} times a uniform choice, lowest {np.exp(z.min()):.2g} times."
    )
    caption = f"{' + '.join(labels)} of the {who}: log preference for a place over a uniform choice, whatever the step."
    if analysis.model.domain.key is not None:
        caption += f" Drawn for the {analysis.model.domain.key} size that most transitions have."
    picture = figures.image(analysis, figures.surface(x, y, inside, z), None, alt, caption, "log preference")
    return Section(pictures=(picture,))


def spatial_labels(analysis: Analysis) -> tuple[str, ...]:
    """The terms of f that depend on the place alone: the same at any context, different from place to place."""
    obs, part = analysis.obs, analysis.smooths()
    region, first = commonest(analysis.model.domain, obs)
    own = np.flatnonzero(window_codes(analysis.model.domain, obs) == window_codes(analysis.model.domain, obs)[first])
    contexts = own[np.unique(np.linspace(0, len(own) - 1, 6).astype(int))]
    somewhere = region.uniform(8, np.random.default_rng(0))
    y, rows = np.tile(somewhere, (len(contexts), 1)), np.repeat(contexts, len(somewhere))
    found = []
    for label in part.model_labels:
        names = part.term(label).covariates
        values = analysis.model.covariates(obs).values(names, obs, y, rows)
        shaped = [np.asarray(values[name]).reshape(len(contexts), -1) for name in names]
        if all(np.all(v == v[0]) for v in shaped) and any(np.any(v[0] != v[0, 0]) for v in shaped):
            found.append(label)
    return tuple(found)
