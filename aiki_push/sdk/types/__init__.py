"""Types that authors declare: read from hints, checked when declared, and used to take values through JSON and back."""
