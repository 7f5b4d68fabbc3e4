package strict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/machine/strict"
)

type wait time.Duration

type inner struct {
	Word  string   `json:"word" max:"3" form:"lower"`
	Words []string `json:"words" items:"2" max:"5" form:"lower"`
	Argv  []string `json:"argv" items:"3" max:"5"`
}

type limited struct {
	inner
	*Shared0
	Need  string  `json:"need" min:"2" max:"5"`
	Text  string  `json:"text" max:"20" lines:"true"`
	Pick  string  `json:"pick" max:"9" oneof:"red green"`
	Count int     `json:"count" min:"0" max:"9"`
	Wait  *wait   `json:"wait" min:"1s" max:"1m"`
	List  []inner `json:"list" items:"2"`
	On    bool    `json:"on"`
}

type Shared0 struct {
	Other string `json:"other" max:"1"`
}

func lower(s string) string {
	if strings.ToLower(s) != s {
		return "must be lower case"
	}
	return ""
}

func TestLimits_names_every_value_beyond_its_limits(t *testing.T) {
	type p = strict.Problem
	forms := map[string]strict.Form{"lower": lower}
	span := func(d time.Duration) *wait { w := wait(d); return &w }
	ok := limited{Need: "two", Text: "a\n\tb", Pick: "red", Wait: span(time.Second), inner: inner{Argv: []string{"A", "A", ""}}}
	tests := map[string]struct {
		change func(*limited)
		want   []p
	}{
		"nothing":         {func(*limited) {}, nil},
		"missing":         {func(v *limited) { v.Need = " \u00a0x " }, []p{{"need", "is missing or too short; give at least 2 characters"}}},
		"characters":      {func(v *limited) { v.Need = "äöüßé" }, nil},
		"too long":        {func(v *limited) { v.Need = "äöüßéx" }, []p{{"need", "has 6 characters; at most 5 are allowed"}}},
		"line feed":       {func(v *limited) { v.Need = "a\nb" }, []p{{"need", "holds the control character U+000A; remove it"}}},
		"escape":          {func(v *limited) { v.Text = "a\x1b[0m" }, []p{{"text", "holds the control character U+001B; remove it"}}},
		"carriage return": {func(v *limited) { v.Text = "a\r\n" }, []p{{"text", "holds the control character U+000D; remove it"}}},
		"bidi override":   {func(v *limited) { v.Text = "a\u202eb" }, []p{{"text", "holds the control character U+202E; remove it"}}},
		"one of":          {func(v *limited) { v.Pick = "blue" }, []p{{"pick", `is "blue"; it must be one of red, green`}}},
		"number":          {func(v *limited) { v.Count = -1 }, []p{{"count", "is -1; it must be between 0 and 9"}}},
		"duration":        {func(v *limited) { v.Wait = span(0) }, []p{{"wait", "is 0s; it must be between 1s and 1m"}}},
		"form":            {func(v *limited) { v.Word = "Ab" }, []p{{"word", "must be lower case"}}},
		"too many":        {func(v *limited) { v.List = make([]inner, 3) }, []p{{"list", "has 3 entries; at most 2 are allowed"}}},
		"twice":           {func(v *limited) { v.Words = []string{"a", "a"} }, []p{{"words[1]", `"a" is listed twice`}}},
		"in an embedded part": {
			func(v *limited) { v.Shared0 = &Shared0{Other: "xx"} }, []p{{"other", "has 2 characters; at most 1 are allowed"}},
		},
		"many": {func(v *limited) { v.Count, v.List = 10, []inner{{}, {Word: "long", Words: []string{"B"}}} }, []p{
			{"count", "is 10; it must be between 0 and 9"},
			{"list[1].word", "has 4 characters; at most 3 are allowed"},
			{"list[1].words[0]", "must be lower case"},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := ok
			tt.change(&v)
			if diff := cmp.Diff(tt.want, strict.Limits(v, forms)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.want, strict.Limits(&v, forms)); diff != "" {
				t.Error("through a pointer:", diff)
			}
		})
	}
}

func TestLimits_panics_when_a_limit_is_not_given(t *testing.T) {
	for name, v := range map[string]any{
		"string": struct{ A string }{},
		"list":   struct{ A []int }{},
		"number": struct{ A int }{},
		"map":    struct{ A map[string]int }{},
		"no number": struct {
			A int `min:"x" max:"1"`
		}{},
		"form": struct {
			A string `max:"1" form:"nobody"`
		}{A: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			strict.Limits(v, nil)
		})
	}
}

func TestPartial_keeps_what_could_be_read(t *testing.T) {
	v := input{Plain: "before"}
	got := strict.Partial([]byte(`{"id":"a","x":1,"checks":[{"argv":["a",1]},7],"count":"x"}`), &v)
	want := input{base: base{ID: "a"}, Checks: []command{{Argv: []string{"a", ""}}, {}}}
	if diff := cmp.Diff(want, v, cmp.AllowUnexported(input{})); diff != "" {
		t.Error(diff)
	}
	if len(got) != 4 {
		t.Errorf("problems: %v", got)
	}
}

func TestMerge_leaves_out_what_only_repeats(t *testing.T) {
	type p = strict.Problem
	read := []p{{"a.b", "1"}, {"c[0]", "2"}}
	found := []p{{"a", "3"}, {"a.b", "4"}, {"a.b.c", "5"}, {"a.bc", "6"}, {"c[0].x", "7"}, {"c[1]", "8"}, {"", "9"}}
	want := []p{{"a.b", "1"}, {"c[0]", "2"}, {"a", "3"}, {"a.bc", "6"}, {"c[1]", "8"}, {"", "9"}}
	if diff := cmp.Diff(want, strict.Merge(read, found)); diff != "" {
		t.Error(diff)
	}
	if got := strict.Merge([]p{{"", "not JSON"}}, found); len(got) != 1 {
		t.Errorf("after an unreadable input: %v", got)
	}
}
