package show

import "io"

// PlainWriter writes text without escape sequences and control characters. It is for the output of another program if there is no
// terminal.
type PlainWriter struct {
	W     io.Writer
	state escape
}

// escape is the writer's position in an escape sequence.
type escape uint8

const (
	outside escape = iota
	begun          // after ESC
	control        // in ESC [ …, which a letter ends
	words          // in ESC ] … or the like, which BEL or ESC \ ends
	leaving        // after the ESC in it
)

func (p *PlainWriter) Write(data []byte) (int, error) {
	plain := make([]byte, 0, len(data))
	for _, b := range data {
		if p.state == outside && (b >= ' ' && b != 0x7f || b == '\n' || b == '\t') {
			plain = append(plain, b)
			continue
		}
		p.state = p.state.next(b)
	}
	if _, err := p.W.Write(plain); err != nil {
		return 0, err
	}
	return len(data), nil
}

func (e escape) next(b byte) escape {
	switch e {
	case outside:
		if b == 0x1b {
			return begun
		}
	case begun:
		switch b {
		case '[':
			return control
		case ']', 'P', 'X', '^', '_':
			return words
		case '(', ')', '*', '+', '#', '%', ' ':
			return begun // one more follows
		}
	case control:
		if b < '@' || b > '~' {
			return control
		}
	case words, leaving:
		switch {
		case b == 0x07, e == leaving && b == '\\':
			return outside
		case b == 0x1b:
			return leaving
		}
		return words
	}
	return outside
}
