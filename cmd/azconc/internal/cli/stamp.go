package cli

// CreateStamp is the metadata name that holds the id of the create request. If the response is lost, the id shows whether
// that request or another client created the container.
const CreateStamp = "azconcop"
