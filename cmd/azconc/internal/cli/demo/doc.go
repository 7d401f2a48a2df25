// Package demo has azconc demo: what goes wrong with the textbook loops, and how azconc prevents it.
package demo
