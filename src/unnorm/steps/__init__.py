"""Step selection: tracks of animals, available steps, movement kernels, habitat selection, simulated tracks, maps.

tracks.py       fixes in bursts; resampled, projected, checked
random_steps.py available steps as a table
fitting.py      `fit_steps`: p(y|x) ∝ k(y|x) exp f(y|x), by Ranking or Logistic
movement.py     the movement kernel that the fit implies
utilisation.py  where simulated tracks spend their time
calibration.py  used-habitat calibration
result.py       StepFit, what can be asked of a fit
"""

from .fitting import fit_steps as fit_steps
from .random_steps import random_steps as random_steps
from .result import StepFit as StepFit
from .tracks import Track as Track
from .tracks import track as track
