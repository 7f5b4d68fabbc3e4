package strict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
)

// Defaults gives every nil pointer with a default tag, in v and all that it holds, the value that the tag means: JSON, or
// the text of a string. Where a field is no pointer the tag only documents it. V must point to a struct.
//
//workflowcheck:ignore
func Defaults(v any) { setDefaults(reflect.ValueOf(v).Elem()) }

func setDefaults(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			setDefaults(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			setDefaults(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			text, ok := v.Type().Field(i).Tag.Lookup("default")
			if field := v.Field(i); !ok {
				setDefaults(field)
			} else if field.Kind() == reflect.Pointer && field.IsNil() {
				field.Set(defaultValue(field.Type(), text))
			}
		}
	}
}

// defaultValue is a pointer to the value that a default tag means.
func defaultValue(pointer reflect.Type, text string) reflect.Value {
	value := reflect.New(pointer.Elem())
	if json.Unmarshal([]byte(text), value.Interface()) == nil {
		return value
	}
	if err := json.Unmarshal([]byte(strconv.Quote(text)), value.Interface()); err != nil {
		panic(fmt.Sprintf("strict.Defaults: the default %s is no %v: %v", text, pointer.Elem(), err))
	}
	return value
}
