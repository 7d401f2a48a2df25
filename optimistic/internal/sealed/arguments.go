package sealed

import (
	"fmt"
	"reflect"
)

// NotNil returns an error that names the first nil among the arguments of a call, which are given by name and value in
// turn. A target is nil too if its client is.
func NotNil(op string, arguments ...any) error {
	for i := 0; i+1 < len(arguments); i += 2 {
		name, value := arguments[i], arguments[i+1]
		if isNil(value) {
			return fmt.Errorf("%s: %v is nil", op, name)
		}
		if client := TraitsOf(value).Client; client != nil && isNil(client) {
			return fmt.Errorf("%s: the client of %v is nil", op, name)
		}
	}
	return nil
}

func isNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}
