package proxy

import (
	"encoding/xml"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// worded puts a problem into the words of the protocol that a request speaks, for clients that show nothing else. A
// request that speaks none gets the problem as it is.
func worded(asked http.Header, content []byte, p *problemBody, problem []byte, header http.Header) (int, []byte) {
	kind, _, _ := mime.ParseMediaType(asked.Get("Content-Type"))
	isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	switch {
	case isJSON && rpcID(content) != nil:
		return rpcError(rpcID(content), p, problem, header)
	case strings.HasPrefix(asked.Get("Authorization"), "AWS4-"):
		return p.Status, awsError(kind, isJSON, asked, p, header)
	}
	return p.Status, problem
}

// rpcID is the id of a JSON-RPC 2.0 request; nil for anything else.
func rpcID(content []byte) jsontext.Value {
	var call struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
	}
	if json.Unmarshal(content, &call) != nil || call.Version != "2.0" || call.ID.Kind() == 'n' {
		return nil
	}
	return call.ID
}

// refusedCode is ours among JSON-RPC's codes for servers (JSON-RPC 2.0 §5.1).
const refusedCode = -32001

// rpcError answers a JSON-RPC request. Its status is 200, as that of a server's own error: of another one clients of
// MCP don't read the content.
func rpcError(id jsontext.Value, p *problemBody, problem []byte, header http.Header) (int, []byte) {
	type rpcProblem struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	}
	text, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Error   rpcProblem     `json:"error"`
	}{"2.0", id, rpcProblem{refusedCode, p.Detail, problem}})
	if err != nil {
		return p.Status, problem
	}
	header.Set("Content-Type", "application/json")
	return http.StatusOK, text
}

// awsError answers a request that is signed as AWS has it: in JSON, as the Query protocol does, or as S3 does.
func awsError(kind string, isJSON bool, asked http.Header, p *problemBody, header http.Header) []byte {
	type fault struct {
		XMLName xml.Name `json:"-"       xml:"Error"`
		Type    string   `json:"__type"  xml:"Type,omitempty"`
		Code    string   `json:"code"    xml:"Code"`
		Message string   `json:"message" xml:"Message"`
	}
	code := awsCode(p.Type)
	if isJSON || strings.HasPrefix(kind, "application/x-amz-json") {
		header.Set("Content-Type", asked.Get("Content-Type"))
		header.Set("X-Amzn-Errortype", code)
		text, _ := json.Marshal(fault{Type: code, Code: code, Message: p.Detail})
		return text
	}
	header.Set("Content-Type", "text/xml")
	var text []byte
	if kind == "application/x-www-form-urlencoded" {
		text, _ = xml.Marshal(struct {
			XMLName xml.Name `xml:"ErrorResponse"`
			Error   fault    `xml:"Error"`
		}{Error: fault{Type: "Sender", Code: code, Message: p.Detail}})
	} else {
		text, _ = xml.Marshal(fault{Code: code, Message: p.Detail})
	}
	return append([]byte(xml.Header), text...)
}

// awsCode is a problem's name as AWS writes its codes: KeepProxyUnmatched.
func awsCode(problem string) string {
	words := strings.Split(problem[strings.LastIndexByte(problem, ':')+1:], "-")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return "KeepProxy" + strings.Join(words, "")
}
