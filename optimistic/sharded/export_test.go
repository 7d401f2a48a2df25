package sharded

// ShardName is for tests that write a shard by other means.
var ShardName = shardName
