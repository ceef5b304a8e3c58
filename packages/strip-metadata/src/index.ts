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
  lengthOf,
  type Piece,
  requireBounded,
  UnreadableFile,
  withFile,
} from './pieces.ts'
export {
  hasTiffStructure,
  mayHaveRemovableMetadata,
  planRemoval,
  type RemovableFormat,
  type RemovalPlan,
} from './plan-removal.ts'
export { isRawExtension } from './tiff.ts'
export { readDirectory, readFormat, readNumbers, sizesOf, type TiffDirectory } from './tiff-directory.ts'
