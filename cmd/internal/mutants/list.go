package main

import "slices"

// mutants are the mistakes, each with the test that notices.
var mutants = slices.Concat(ofChanges, ofRemovals, ofLeases, ofFiles, ofMessages, ofParts, ofDeliveries, ofShards, ofStates, ofCredentials)
