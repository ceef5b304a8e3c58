/**
 * media-rows.ts refuses retired ids instead. A trigger makes SQLite copy each page that an insert changes, because the
 * trigger may fail. The copies take a fifth of the writer's time.
 */
export const retiredByCode = `
DROP TRIGGER IF EXISTS media_not_retired;
`
