"""The demo: one experiment, in a minute and a half."""

from regard.papers.demo import first_look as first_look
