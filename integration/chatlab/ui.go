package chatlab

import "net/http"

// uiEvent is what a person or driver did at the page beside sending.
type uiEvent struct {
	ConversationID string `json:"conversation_id"`
	Project        string `json:"project"`
	Kind           string `json:"kind"`
	Detail         string `json:"detail"`
}

// forbidden are the controls that no driver may use.
var forbidden = map[string]string{
	"voice":        "the voice button was clicked",
	"decoy_submit": "the decoy submit button was clicked",
	"decoy_stop":   "a stop button outside the composer was clicked",
	"script_click": "a control was clicked by script",
}

func (s *Server) postUI(w http.ResponseWriter, r *http.Request) {
	var e uiEvent
	if !readJSON(w, r, &e) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(e.Project, e.ConversationID)
	if c == nil {
		writeError(w, errNoConversation, http.StatusNotFound)
		return
	}
	s.note(c.id, e.Kind, e.Detail)
	if what, bad := forbidden[e.Kind]; bad {
		s.violate(c.id, what)
	}
	switch e.Kind {
	case "click_ignored":
		c.ignored++
		c.sendClick(s)
	case "stop":
		if c.playing != nil {
			c.playing.cancel(errStopped)
		}
	case "retry", "auto_retry":
		if c.playing != nil {
			_ = s.again(c, c.playing.retry) // there is something to answer
		}
	case "continue":
		c.release(continueGate)
	case "accept":
		s.stateOf(c).begin(State{}, 0)
		s.sendState(c)
	}
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}
