/** What the first render of an item's variants has found. The duration is in milliseconds. */
export const previews = `
ALTER TABLE media ADD COLUMN thumbhash BLOB;
ALTER TABLE media ADD COLUMN duration INTEGER;
`
