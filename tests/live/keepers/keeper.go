// See keeper.py: the same in Go.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
)

type frame struct {
	Type    string            `json:"type"`
	ID      string            `json:"id,omitempty"`
	DataDir string            `json:"data_dir,omitempty"`
	Args    map[string]string `json:"args,omitempty"`
	Name    string            `json:"name,omitempty"`
	Version string            `json:"version,omitempty"`
	Content []map[string]any  `json:"content,omitempty"`
	Schema  map[string]any    `json:"schema,omitempty"`
}

func emit(f frame) { _ = json.NewEncoder(os.Stdout).Encode(f) }

func work(op, base string) (string, error) {
	at := filepath.Join(base, "state")
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	switch op {
	case "put":
		if err := os.WriteFile(at+".new", []byte("kept"), 0o644); err != nil {
			return "", err
		}
		return "ok", os.Rename(at+".new", at)
	case "take":
		b, err := os.ReadFile(at)
		return string(b), err
	case "spoil":
		// A program that runs cannot be written: in its place, another.
		err := os.WriteFile(self+".new", []byte("x"), 0o755)
		if e := os.Rename(self+".new", self); e != nil {
			err = e
		}
		os.Remove(self + ".new")
		return "done", err
	}
	return "done", os.WriteFile(filepath.Join(filepath.Dir(self), "added"), []byte("\n"), 0o644)
}

func main() {
	var data string
	emit(frame{Type: "hello", Name: os.Args[1], Version: "1"})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var f frame
		_ = json.Unmarshal(in.Bytes(), &f)
		switch f.Type {
		case "hello_ack":
			data = f.DataDir
			emit(frame{Type: "register_tool", Name: "t", Schema: map[string]any{"type": "object"}})
			emit(frame{Type: "ready"})
		case "tool_call":
			base, err := os.Getwd()
			if f.Args["base"] == "data" {
				base = data
			}
			text := "refused"
			if s, e := work(f.Args["op"], base); err == nil && e == nil {
				text = s
			}
			emit(frame{Type: "tool_result", ID: f.ID, Content: []map[string]any{{"type": "text", "text": text}}})
		case "shutdown":
			emit(frame{Type: "shutdown_ack"})
			return
		}
	}
}
