/**
 * Items whose bytes a check found changed, and ids that a check took from bytes without an item: such an id never
 * becomes an item's, so that an upload which commits too late fails instead of naming bytes that were moved away.
 */
export const upkeep = `
CREATE TABLE damaged (
  id TEXT PRIMARY KEY NOT NULL REFERENCES media (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE retired (
  id TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER media_not_retired BEFORE INSERT ON media
WHEN EXISTS (SELECT 1 FROM retired WHERE id = new.id)
BEGIN
  SELECT RAISE(ABORT, 'the bytes of this item were set aside by a check');
END;
`
