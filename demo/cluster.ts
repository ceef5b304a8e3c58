import installTools from '../test/harness/tools.ts'
import { createSteps } from './steps.ts'

// npm run demo:cluster: three servers behind nginx, with PostgreSQL and an S3 store, lose a server and the primary of the
// database while clients upload. The exit code is 0 only if no acknowledged upload is lost. It needs Debian and root.

const steps = createSteps((text) => console.log(text))
await steps.run('Looking for PostgreSQL, Ceph and nginx; as root, missing packages are installed', async () =>
  installTools(),
)
// It looks for the installed programs when it is imported.
const { loseServerAndPrimary } = await import('./lose-server-and-primary.ts')
await loseServerAndPrimary(steps).catch((error: unknown) => {
  console.error(error)
  steps.expect('the demonstration runs to its end', false)
})
const failed = steps.failed()
console.log(failed.length === 0 ? 'Everything held.' : `Failed: ${failed.join('; ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1
