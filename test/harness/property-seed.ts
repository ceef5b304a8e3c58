import { givenSeed } from './random.ts'

// Vitest's set-up of each test file: property tests take their cases from TEST_SEED where it is set. A failure prints the seed.
if (givenSeed !== undefined) (await import('fast-check')).default.configureGlobal({ seed: givenSeed })
