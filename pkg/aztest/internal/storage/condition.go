package storage

import "errors"

// Grammar parses conditions on a T: terms joined by or and and, of which and binds tighter, with not and parentheses.
type Grammar[T any] struct {
	Take func(word string) bool       // takes "or", "and", "not", "(" or ")", if it is next
	Term func() (func(T) bool, error) // takes a term
}

// Parse takes a whole condition.
func (g Grammar[T]) Parse() (func(T) bool, error) {
	return g.join("or", func(l, r bool) bool { return l || r }, func() (func(T) bool, error) {
		return g.join("and", func(l, r bool) bool { return l && r }, g.factor)
	})
}

func (g Grammar[T]) join(word string, with func(l, r bool) bool, part func() (func(T) bool, error)) (func(T) bool, error) {
	left, err := part()
	for err == nil && g.Take(word) {
		var right func(T) bool
		first := left
		if right, err = part(); err == nil {
			left = func(t T) bool { return with(first(t), right(t)) }
		}
	}
	return left, err
}

func (g Grammar[T]) factor() (func(T) bool, error) {
	if g.Take("not") {
		inner, err := g.factor()
		return func(t T) bool { return !inner(t) }, err
	}
	if !g.Take("(") {
		return g.Term()
	}
	inner, err := g.Parse()
	if err == nil && !g.Take(")") {
		err = errors.New("a parenthesis is not closed")
	}
	return inner, err
}
