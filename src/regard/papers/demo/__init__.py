"""The demo: two experiments, in two minutes or three."""

from regard.papers.demo import first_look as first_look
from regard.papers.demo import taken_apart as taken_apart
