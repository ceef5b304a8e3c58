import './equal-bytes.ts'
import { givenSeed } from './random.ts'

// Vitest's set-up of each test file: property tests use TEST_SEED if it is set. A failure prints the seed.
if (givenSeed !== undefined) (await import('fast-check')).default.configureGlobal({ seed: givenSeed })
