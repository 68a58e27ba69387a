"""What runs need without anyone asking: offers, wake-ups, recovery. Hints say when to look; the sweep looks at what had none."""
