import { afterAll, beforeAll, describe } from 'vitest'
import { usePostgres, useS3 } from '../harness/database.ts'

/**
 * Runs suites of test/http, which by default use SQLite and the disk, on servers with PostgreSQL and an S3 store.
 * `npm run test:postgres-s3` runs all suites on them.
 */
export function describeOnPostgresAndS3(...suites: readonly string[]): void {
  describe.each(suites)('%s on PostgreSQL and S3', async (suite) => {
    let restore: (() => void)[] = []
    beforeAll(() => {
      restore = [usePostgres(), useS3()]
    })
    afterAll(() => {
      for (const undo of restore) undo()
    })
    // The query makes it a module of its own, so that its tests are registered again.
    await import(`${new URL(`../http/${suite}.test.ts`, import.meta.url).pathname}?postgres-s3`)
  })
}
