"""Mistakes that type checkers find before anything runs: one in each line that is marked."""

import pandas as pd

import dpframe as dpf

trips = pd.DataFrame({"zone": ["A", "B", "A"]})
private = dpf.DPAccessor(trips)
private.count(by="zone", epsilom=0.5)  # wrong: a keyword
private.count(by="zone", epsilon=[0.5])  # wrong: no amount
private.count(by="zone", epsilon=0.5, mechanism="laplac")  # wrong: no mechanism
private.release(dpf.count(), epsilon=0.5, denoise="automatic")  # wrong: no denoiser
private.nunique()  # wrong: no such method
private.discover("zone", epsilon=1, mechanism="box")  # wrong: not a mechanism of discover
private.aggregate("zone", n=3, epsilon=1)  # wrong: no query
dpf.count("zone", max_row=3)  # wrong: a keyword
dpf.release(trips, dpf.count(), epsilom=0.5)  # wrong: a keyword
dpf.release(trips, {"n": dpf.count()}, epsilon=0.5).to_parquet("n")  # wrong: a dict of frames
private.plan(dpf.count(), epsilon=0.5, name="n")  # wrong: nothing is recorded
dpf.interval(trips, levels=0.9)  # wrong: a keyword
dpf.denoise(trips, "best")  # wrong: no denoiser
dpf.DataFrame(trips).dp.count("zone", epsilom=0.5)  # wrong: a keyword
dpf.DataFrame(trips).dp.cuont("zone", epsilon=0.5)  # wrong: no such method
