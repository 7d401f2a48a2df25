package wire

// Apart returns w as in another process: it shares no gates with this one.
func Apart(w Wire) Wire {
	w.gates = newPaces()
	return w
}
