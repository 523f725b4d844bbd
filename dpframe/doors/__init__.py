"""The doors: public facts go in, releases come out; and one door that is not protected."""
