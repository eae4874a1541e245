// tally counts words, for the user and for the model. Each frame is handled on
// a goroutine of its own, so answers may come in any order.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
)

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type frame struct {
	Type        string          `json:"type"`
	ID          string          `json:"id,omitempty"`
	Name        string          `json:"name,omitempty"`
	Version     string          `json:"version,omitempty"`
	Can         []string        `json:"capabilities,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Action      string          `json:"action,omitempty"`
	Display     string          `json:"display,omitempty"`
	Content     []block         `json:"content,omitempty"`
}

var out sync.Mutex

func emit(f frame) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(f) != nil {
		os.Exit(1)
	}
	out.Lock()
	defer out.Unlock()
	os.Stdout.Write(b.Bytes())
}

func count(text string) string {
	return strconv.Itoa(len(strings.Fields(text))) + " words"
}

func handle(f frame) {
	switch f.Type {
	case "command_invoked":
		var text string
		_ = json.Unmarshal(f.Args, &text)
		emit(frame{Type: "command_response", ID: f.ID, Action: "display", Display: count(text)})
	case "tool_call":
		var args struct{ Text string }
		_ = json.Unmarshal(f.Args, &args)
		emit(frame{Type: "tool_result", ID: f.ID, Content: []block{{"text", count(args.Text)}}})
	}
}

func main() {
	emit(frame{Type: "hello", Name: "tally", Version: "1.0.0",
		Can: []string{"commands", "tools", "events", "panels"}})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		var f frame
		if json.Unmarshal(in.Bytes(), &f) != nil {
			continue
		}
		switch f.Type {
		case "hello_ack":
			emit(frame{Type: "register_command", Name: "tally", Description: "count the words that follow"})
			emit(frame{Type: "register_tool", Name: "count_words", Description: "Count the words of a text.",
				Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)})
			emit(frame{Type: "ready"})
		case "shutdown":
			emit(frame{Type: "shutdown_ack"})
			return
		default:
			go handle(f)
		}
	}
}
