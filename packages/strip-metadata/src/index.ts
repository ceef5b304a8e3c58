export {
  type Box,
  boxAt,
  childOf,
  childrenOf,
  dataOf,
  type LoadedBoxes,
  loadBox,
} from './boxes.ts'
export {
  type ByteSource,
  createByteSource,
  createMemorySource,
  lengthOf,
  type Piece,
  requireBounded,
  UnreadableFile,
  withFile,
} from './pieces.ts'
export {
  hasTiffStructure,
  isRemovableType,
  mayHaveRemovableMetadata,
  planRemoval,
  type RemovableFormat,
  type RemovalPlan,
} from './plan-removal.ts'
export { mayHaveTakenTime, readTakenTime, type TakenReading } from './taken-time.ts'
export { isRawExtension } from './tiff.ts'
export { readDirectory, readFormat, readNumbers, sizesOf, type TiffDirectory } from './tiff-directory.ts'
export type { TakenTime } from './time-text.ts'
