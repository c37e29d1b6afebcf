"""Across the papers: questions that none of the sources asks, and that take two of them."""

from regard.papers.across import bottleneck as bottleneck
from regard.papers.across import directions as directions
from regard.papers.across import guidance as guidance
from regard.papers.across import hf as hf
from regard.papers.across import order as order
from regard.papers.across import prediction as prediction
from regard.papers.across import seeds as seeds
from regard.papers.across import transformer_guidance as transformer_guidance
from regard.papers.across import transformer_lexical as transformer_lexical
from regard.papers.across import transformer_tasks as transformer_tasks
from regard.papers.across import transformer_terms as transformer_terms
