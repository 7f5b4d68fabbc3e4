package strict_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"steward/workflows/machine/strict"
)

// document draws a JSON text over the keys of input, right and wrong ones, some of them twice.
func document(t *rapid.T, depth int) string {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
	case 1:
		return rapid.SampledFrom([]string{"0", "-1", "255", "256", "1.5", "1e3", "1e999"}).Draw(t, "number")
	case 2:
		return rapid.SampledFrom([]string{`""`, `"a"`, `"high"`, `"10m"`, `"\ud800"`, `"\ud83d\ude00"`, `"aGk="`, `"é\n"`}).Draw(t, "string")
	case 3, 5:
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return document(t, max(depth-1, 0)) }), 0, 3).Draw(t, "list")
		return "[" + join(list) + "]"
	default:
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{
			"id", "ID", "owner", "note", "count", "ratio", "on", "level", "pair", "checks", "argv", "timeout", "env", "any", "raw", "x",
		}), 0, 4).Draw(t, "keys")
		var members []string
		for _, key := range keys {
			members = append(members, fmt.Sprintf("%q: %s", key, document(t, max(depth-1, 0))))
		}
		return "{" + join(members) + "}"
	}
}

func join(list []string) string {
	var b bytes.Buffer
	for i, s := range list {
		if i > 0 {
			b.WriteString(" , ")
		}
		b.WriteString(s)
	}
	return b.String()
}

// agrees holds strict against encoding/json: it never takes what that refuses, and what both take means the same.
func agrees(data []byte) error {
	var got, want input
	err := strict.Unmarshal(data, &got)
	again := strict.Unmarshal(data, new(input))
	if !reflect.DeepEqual(err, again) {
		return fmt.Errorf("two readings differ:\n%v\n---\n%v", err, again)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	standard := decoder.Decode(&want)
	switch {
	case err == nil && standard != nil:
		return fmt.Errorf("taken, but encoding/json says: %w", standard)
	case err == nil && !reflect.DeepEqual(got, want):
		return fmt.Errorf("decoded as %+v, but encoding/json says %+v", got, want)
	case err != nil && err.Error() == "":
		return fmt.Errorf("refused without a word")
	}
	return nil
}

func TestUnmarshal_agrees_with_encoding_json(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := agrees([]byte(document(t, 4))); err != nil {
			t.Fatal(err)
		}
	})
}

func TestUnmarshal_takes_what_encoding_json_writes(t *testing.T) {
	type value struct {
		A string
		B []int16
		C map[string]*value
		D *bool
		E float32
	}
	var draw func(t *rapid.T, depth int) value
	draw = func(t *rapid.T, depth int) value {
		v := value{
			A: rapid.String().Draw(t, "A"),
			B: rapid.SliceOf(rapid.Int16()).Draw(t, "B"),
			D: rapid.Ptr(rapid.Bool(), true).Draw(t, "D"),
			E: rapid.Float32Range(-1e9, 1e9).Draw(t, "E"),
		}
		if depth > 0 {
			v.C = map[string]*value{}
			for _, key := range rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "keys") {
				inner := draw(t, depth-1)
				v.C[key] = &inner
			}
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t, 2)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got value
		if err := strict.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nbecame %+v", data, got)
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","checks":[{"argv":["x"],"timeout":"1s","env":{"A":"b"},"exit":0}],"any":{"x":[1,null,true]}}`,
		`{"id":"\ud83d\ude00","id":"\ud800"}`, `{"pair":[1,2,3],"raw":[[[]]]}`, ` [ ] `, `{"a`, "\xff", `{"":{" ":""}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := agrees(data); err != nil {
			t.Fatal(err)
		}
	})
}
