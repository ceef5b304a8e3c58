import { afterAll, beforeAll, describe } from 'vitest'
import { hasCeph } from '../harness/ceph.ts'
import { useS3 } from '../harness/database.ts'

/** Runs suites of test/http, which by default store files on the disk and small ones in the catalog, with all files in an S3 store. */
export function describeOnS3(...suites: readonly string[]): void {
  describe.skipIf(!hasCeph).each(suites)('%s on S3', async (suite) => {
    let restore = () => {}
    beforeAll(() => {
      restore = useS3()
    })
    afterAll(() => restore())
    // The query makes it a module of its own, so that its tests are registered again.
    await import(`${new URL(`../http/${suite}.test.ts`, import.meta.url).pathname}?s3`)
  })
}
