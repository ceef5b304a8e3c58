/** Deletes the index of names, because `ẞ` is indexed as `ss` now. The service indexes the names again. */
export const nameFolding = `
DELETE FROM name_segments;
DELETE FROM name_chunks;
DELETE FROM name_marks;
DELETE FROM name_claims;
`
