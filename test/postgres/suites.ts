import { afterAll, beforeAll, describe } from 'vitest'
import { usePostgres } from '../harness/database.ts'
import { canUsePostgres } from '../harness/postgres.ts'

/** Runs suites of test/http, which by default use SQLite, on servers that store their catalogs in PostgreSQL. */
export function describeOnPostgres(...suites: readonly string[]): void {
  describe.skipIf(!canUsePostgres).each(suites)('%s on PostgreSQL', async (suite) => {
    let restore = () => {}
    beforeAll(() => {
      restore = usePostgres()
    })
    afterAll(() => restore())
    // The query makes it a module of its own, so that its tests are registered again.
    await import(`${new URL(`../http/${suite}.test.ts`, import.meta.url).pathname}?postgres`)
  })
}
