"""What is done to Regard so that nobody has to believe what it promises.

`python -m torture --kills 1000 --flips 1000 --inputs 1000` kills processes at random instants,
flips bits in every kind of file, makes up configurations, command lines, corpora and recordings,
and refuses disk and rights; then it prints what was tried, what held and what failed.
"""
