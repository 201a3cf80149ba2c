package upstream

import "keep-proxy/internal/fault"

// The instants of a dispatch at which losing the process makes a difference.
var (
	pointBeforeByteOne  = fault.New("upstream.before_byte_one")
	pointRequestWritten = fault.New("upstream.request_written")
	pointHeadRead       = fault.New("upstream.head_read")
	pointAnswerComplete = fault.New("upstream.answer_complete")
)
