// Package dev has the verbs of azconc dev, which install and run an Azurite.
package dev
