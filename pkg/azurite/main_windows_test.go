package azurite

func ignoreTermination() {}
