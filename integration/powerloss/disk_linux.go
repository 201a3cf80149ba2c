package powerloss

// Disk is what the file system of integration/powerloss/disk is told, as JSON in its only
// argument. It says "ready" in a line when it is mounted, and is unmounted at the end of its
// standard input.
type Disk struct {
	// Mount is an empty folder, in whose place Backing is shown.
	Mount   string `json:"mount"`
	Backing string `json:"backing"`
	// Shadow keeps what is durable of Backing.
	Shadow string `json:"shadow"`
	Steps
}
