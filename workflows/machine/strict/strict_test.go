package strict_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/machine/strict"
)

type span time.Duration

func (s *span) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("must be a duration like 90s or 10m, not %s", b)
	}
	d, err := time.ParseDuration(text)
	*s = span(d)
	return err
}

type level int

func (l *level) UnmarshalText(b []byte) error {
	if string(b) != "high" {
		return fmt.Errorf("must be high, not %q", b)
	}
	*l = 3
	return nil
}

type base struct {
	ID   string `json:"id"`
	Note string `json:"note"`
}

type Shared struct {
	Owner string `json:"owner"`
}

type command struct {
	Argv    []string          `json:"argv"`
	Timeout span              `json:"timeout"`
	Env     map[string]string `json:"env"`
	Exit    *int              `json:"exit"`
}

type input struct {
	base
	*Shared
	Note   string          `json:"note"` // hides base.Note
	Count  uint8           `json:"count"`
	Ratio  float64         `json:"ratio"`
	On     bool            `json:"on"`
	Level  level           `json:"level"`
	Number json.Number     `json:"number"`
	Pair   [2]int          `json:"pair"`
	Bytes  []byte          `json:"bytes"`
	Checks []command       `json:"checks"`
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw"`
	Hidden string          `json:"-"`
	Plain  string
}

func problems(t *testing.T, data string) []strict.Problem {
	t.Helper()
	got := input{Plain: "before"}
	err := strict.Unmarshal([]byte(data), &got)
	if err == nil {
		return nil
	}
	var e *strict.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %T, not *strict.Error", err)
	}
	if !reflect.DeepEqual(got, input{Plain: "before"}) {
		t.Errorf("the value was changed although there were problems: %+v", got)
	}
	return e.Problems
}

func TestUnmarshal_fills_the_value_like_encoding_json(t *testing.T) {
	data := []byte(`
	{"id":"a","owner":"me","note":"n\u00e9 \ud83d\ude00","count":255,"ratio":1.5e3,"on":true,"level":"high","number":12,"pair":[1,2],
	 "bytes":"aGk=","checks":[{"argv":["go","test"],"timeout":"10m","env":{"A":"1"},"exit":0},{"argv":null,"exit":null}],
	 "any":{"x":[1,null]},"raw":{"k": [1]},"Plain":"p"} `)
	var want, got input
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got.Hidden = "was here before"
	if err := strict.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(input{})); diff != "" {
		t.Error(diff)
	}
}

func TestUnmarshal_takes_values_that_are_no_objects(t *testing.T) {
	var list []int
	if err := strict.Unmarshal([]byte("[1, 2 ,3]"), &list); err != nil || !reflect.DeepEqual(list, []int{1, 2, 3}) {
		t.Errorf("list: %v, %v", list, err)
	}
	var n int
	if err := strict.Unmarshal([]byte(" -7 "), &n); err != nil || n != -7 {
		t.Errorf("number: %v, %v", n, err)
	}
	var p *int
	if err := strict.Unmarshal([]byte("null"), &p); err != nil || p != nil {
		t.Errorf("null: %v, %v", p, err)
	}
	var m map[string][]int
	if err := strict.Unmarshal([]byte(`{"a":[],"b":null,"c":[1]}`), &m); err != nil || m["a"] == nil || m["b"] != nil || len(m["c"]) != 1 {
		t.Errorf("map: %v, %v", m, err)
	}
}

func TestUnmarshal_names_every_problem_by_its_path(t *testing.T) {
	type p = strict.Problem
	const known = "unknown key; known keys are argv, timeout, env, exit"
	tests := map[string]struct {
		data string
		want []p
	}{
		"unknown key":            {`{"checks":[{},{"argvs":[]}]}`, []p{{"checks[1].argvs", known}}},
		"key of another case":    {`{"checks":[{"Argv":[]}]}`, []p{{"checks[0].Argv", known}}},
		"duplicate key":          {`{"id":"a","id":"b"}`, []p{{"id", "the key appears twice; keep one"}}},
		"duplicate by an escape": {`{"id":"a","\u0069d":"b"}`, []p{{"id", "the key appears twice; keep one"}}},
		"duplicate in a map":     {`{"checks":[{"env":{"A":"1","A":"2"}}]}`, []p{{"checks[0].env.A", "the key appears twice; keep one"}}},
		"duplicate in any":       {`{"any":[{"x":{"y":1,"y":2}}]}`, []p{{"any[0].x.y", "the key appears twice; keep one"}}},
		"duplicate in raw":       {`{"raw":{"y":1,"y":2}}`, []p{{"raw.y", "the key appears twice; keep one"}}},
		"duplicate in a wrong type": {`{"count":{"y":1,"y":2}}`, []p{
			{"count", "must be a whole number of at least 0, not an object"}, {"count.y", "the key appears twice; keep one"},
		}},
		"key that is no word": {`{"checks":[{"env":{"A B":1}}]}`, []p{{`checks[0].env["A B"]`, "must be a string, not a number"}}},
		"string for an array": {`{"checks":[{"argv":"ls"}]}`, []p{{"checks[0].argv", "must be an array, not a string"}}},
		"number for a string": {`{"id":7}`, []p{{"id", "must be a string, not a number"}}},
		"array for an object": {`{"checks":[[]]}`, []p{{"checks[0]", "must be an object, not an array"}}},
		"null for a string":   {`{"note":null}`, []p{{"note", "must be a string, not null"}}},
		"null for a number":   {`{"pair":[1,null]}`, []p{{"pair[1]", "must be a whole number, not null"}}},
		"string for a bool":   {`{"on":"true"}`, []p{{"on", "must be true or false, not a string"}}},
		"too large":           {`{"count":256}`, []p{{"count", "must be a whole number of at least 0 that fits uint8, not 256"}}},
		"negative":            {`{"count":-1}`, []p{{"count", "must be a whole number of at least 0 that fits uint8, not -1"}}},
		"fraction":            {`{"pair":[1.0,2]}`, []p{{"pair[0]", "must be a whole number that fits int, not 1.0"}}},
		"float overflow":      {`{"ratio":1e999}`, []p{{"ratio", "must be a number that fits float64, not 1e999"}}},
		"string for a number": {`{"number":"12"}`, []p{{"number", "must be a number, not a string"}}},
		"short array":         {`{"pair":[1]}`, []p{{"pair", "must have 2 elements, not 1"}}},
		"long array":          {`{"pair":[1,2,3]}`, []p{{"pair", "must have 2 elements, not 3"}}},
		"bad base64":          {`{"bytes":"*"}`, []p{{"bytes", "illegal base64 data at input byte 0"}}},
		"own decoding":        {`{"checks":[{"timeout":5}]}`, []p{{"checks[0].timeout", "must be a duration like 90s or 10m, not 5"}}},
		"own text":            {`{"level":"low"}`, []p{{"level", `must be high, not "low"`}}},
		"own text, type":      {`{"level":3}`, []p{{"level", "must be a string, not a number"}}},
		"half a character":    {`{"id":"a\ud800b"}`, []p{{"id", `holds the escape \ud800, which is half of a character`}}},
		"low half alone":      {`{"id":"\udc00"}`, []p{{"id", `holds the escape \udc00, which is half of a character`}}},
		"two high halves":     {`{"id":"\ud800\ud83d\ude00"}`, []p{{"id", `holds the escape \ud800, which is half of a character`}}},
		"top level":           {`[]`, []p{{"", "must be an object, not an array"}}},
		"empty":               {" \n", []p{{"", "the input is empty; give a JSON value"}}},
		"cut off":             {`{"id":`, []p{{"", "the input is not valid JSON at line 1, column 6: unexpected end of JSON input"}}},
		"trailing data": {"{}\n {}", []p{{
			"", "the input is not valid JSON at line 2, column 2: invalid character '{' after top-level value",
		}}},
		"control character": {"{\"id\":\"a\nb\"}", []p{{
			"", `the input is not valid JSON at line 1, column 9: invalid character '\n' in string literal`,
		}}},
		"not UTF-8": {"{\n\"id\":\"é\xff\"}", []p{{"", "the input is not valid UTF-8 at line 2, column 8"}}},
		"all at once": {`{"idd":1,"count":"x","checks":[{"argv":[1,"a",null]},3]}`, []p{
			{"idd", "unknown key; known keys are id, owner, note, count, ratio, on, level, number, pair, bytes, checks, any, raw, Plain"},
			{"count", "must be a whole number of at least 0, not a string"},
			{"checks[0].argv[0]", "must be a string, not a number"},
			{"checks[0].argv[2]", "must be a string, not null"},
			{"checks[1]", "must be an object, not a number"},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(t, tt.data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnmarshal_is_bounded(t *testing.T) {
	deep := func(n int) string { return `{"any":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	if got := problems(t, deep(strict.MaxDepth-1)); got != nil {
		t.Errorf("at the depth limit: %v", got)
	}
	got := problems(t, deep(strict.MaxDepth))
	if len(got) != 1 || got[0].Message != "the input nests deeper than 64 levels at line 1, column 71" {
		t.Errorf("over the depth limit: %v", got)
	}
	if got := problems(t, `{"id":"`+strings.Repeat("[", 1000)+`\"["}`); got != nil {
		t.Errorf("brackets in a string: %v", got)
	}
	if got := problems(t, `{"id":"`+strings.Repeat("x", strict.MaxBytes)+`"}`); len(got) != 1 || !strings.Contains(got[0].Message, "at most") {
		t.Errorf("over the size limit: %v", got)
	}
	many := problems(t, `{"pair":[`+strings.Repeat(`"x",`, 1)+`2],"checks":[`+strings.Repeat("1,", 149)+`1]}`)
	if len(many) != strict.MaxProblems+1 || many[strict.MaxProblems].Message != "51 more problems are not listed" {
		t.Errorf("%d problems, the last is %v", len(many), many[len(many)-1])
	}
}

func TestError_has_one_bounded_line_per_problem(t *testing.T) {
	var v struct {
		A, B int
	}
	err := strict.Unmarshal([]byte(`{"A":"x","B":[],"`+strings.Repeat("é", 300)+`":1,"a\nb":2}`), &v)
	want := "A: must be a whole number, not a string\n" +
		"B: must be a whole number, not an array\n" +
		strings.Repeat("é", 32) + "…: unknown key; known keys are A, B\n" +
		`["a\nb"]: unknown key; known keys are A, B`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	long := &strict.Error{Problems: make([]strict.Problem, 500)}
	for i := range long.Problems {
		long.Problems[i] = strict.Problem{Path: "p", Message: "two\nlines " + strings.Repeat("x", 1000)}
	}
	lines := strings.Split(long.Error(), "\n")
	if len(lines) != strict.MaxProblems+2 || lines[len(lines)-1] != "… and 399 more problems" || len(lines[0]) > 410 {
		t.Errorf("%d lines, first %q, last %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

func TestUnmarshal_panics_at_types_it_cannot_fill(t *testing.T) {
	for name, v := range map[string]any{
		"no pointer":      input{},
		"nil pointer":     (*input)(nil),
		"channel":         new(chan int),
		"map of int keys": new(map[int]string),
		"option string": new(struct {
			N int `json:",string"`
		}),
		"embedded pointer": new(struct{ *base }),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = strict.Unmarshal([]byte("{}"), v)
		})
	}
}
